"""Tests of the gate, of the servers and of the proxy: the tools that other tests stand on."""
