"""Programs that show and measure the queue."""
