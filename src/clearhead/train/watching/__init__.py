"""What a person looks at while a model trains: logs, samples, curves, the model card."""
