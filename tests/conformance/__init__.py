"""What the queue promises, the same on both engines, seen through other people's clients."""
