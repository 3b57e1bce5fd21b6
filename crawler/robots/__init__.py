"""Rules of sites for crawlers: robots.txt (RFC 9309), TDMRep, opt-outs."""
