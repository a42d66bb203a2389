"""Evidence crates: a paper or a study as a Workflow Run RO-Crate, from the sentence to the parameter, the code, the run and the verdict."""
