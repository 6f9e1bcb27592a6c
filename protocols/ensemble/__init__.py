"""Learning from an ensemble of many parties' classifiers by their votes (paper 3), with votes that stay secret."""
