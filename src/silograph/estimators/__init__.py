"""The scikit-learn façade: SmoothGraph for one silo, ConsensusGraph for several."""
