"""The studies of speed on Hopper: what is run, what was found, and the two pages about it."""
