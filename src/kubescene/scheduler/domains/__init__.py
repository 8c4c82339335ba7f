"""Counting pods by topology domain, for plugins that spread, attract or repel pods.

`PodCensus` groups the pods on nodes by what selectors and terms can tell apart and follows the
node table. A `RowCounter` adds up the groups that matter to one question, per node. A
`DomainTally` adds the nodes of a domain. All of it is corrected as pods come and go; nothing is
counted again for every pod to be placed. Plugins of all profiles share one census
(`NodeTable.shared`).
"""
