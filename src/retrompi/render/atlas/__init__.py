"""The pages of papers and the atlas over all of them."""
