"""How statements are judged: evaluators of claims, checks of facts and curves, their findings and verdicts."""
