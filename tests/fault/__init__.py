"""Tests that break the network, the servers and the processes around the library."""
