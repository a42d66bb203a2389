"""Cards of models and platforms: their numbers with sources, what the posteriors leave undetermined, and the full dossier."""
