"""Recordings: the labelled dataset, its files, and their checksum."""
