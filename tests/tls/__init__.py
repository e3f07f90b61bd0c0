"""Tests of encrypted connections."""
