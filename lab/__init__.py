"""What no running farm needs: trainers and evaluations. It is above farmwatch, which never imports it."""
