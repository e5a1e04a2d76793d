"""What a step of inference costs on given hardware: parameters, FLOPs, bytes, and the time they take at best."""
