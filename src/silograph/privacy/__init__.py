"""Privacy in numbers: what a study may ask for, masks under which sums are added, noise, and what noise costs."""
