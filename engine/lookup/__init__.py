"""Answering questions from the knowledge base: retrieval, follow-ups, calculators."""
