"""Tests of cwist_jq and the tools that they need."""
