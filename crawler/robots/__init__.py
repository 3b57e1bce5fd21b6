"""What sites ask of crawlers: robots.txt (RFC 9309), TDMRep, opt-outs."""
