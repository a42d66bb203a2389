"""What a request asks and what answers it before any job: its address, checks of values and uploads, its language, the first answer."""
