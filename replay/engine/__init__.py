"""Plans and runs replays."""
