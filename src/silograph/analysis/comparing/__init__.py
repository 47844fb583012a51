"""Whether the graphs of two groups of silos differ: by pairs of nodes, by numbers of whole graphs, and as a whole.

Learning does not see the groups, so that silos may change places under the null hypothesis. Hence all p-values are by
permutation, and hold for any distribution of weights.
"""
