"""What a policy says and what it decides, from facts that are handed in. Pure: the same facts always give the same decision."""
