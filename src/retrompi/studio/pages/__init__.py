"""The pages of the studio, one file each (`retrompi.studio.requests.page` defines a page)."""
