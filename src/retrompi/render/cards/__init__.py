"""A model's or a platform's card: its numbers with their sources, what its posteriors leave undetermined, its dossier."""
