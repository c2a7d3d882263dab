"""The demonstration's surroundings: a simulated fleet, in a real Prometheus or read directly."""
