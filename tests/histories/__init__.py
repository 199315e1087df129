"""Random histories of groups, and whether `explain` tells the truth about them: `make explain-histories`."""
