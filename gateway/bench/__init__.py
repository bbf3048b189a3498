"""The measurement harness behind `gateway bench`."""
