"""Central baselines that the joint protocols are compared with: plain functions on arrays, one method a module.

They assume a curator who sees all columns, and protect against whoever sees the model.
"""
