"""One small grammar: meanings are drawn, and realised in English and in French."""
