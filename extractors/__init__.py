"""What lines mean: from the bytes of a block to observations. Knows no job and no clock."""
