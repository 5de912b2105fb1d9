"""What is shown of a training run: progress, samples, curves, the model card."""
