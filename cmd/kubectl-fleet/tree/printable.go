package tree

import clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"

// Printable returns a text as it can be shown on a terminal, whatever its author wrote.
func Printable(text string) string { return clusterv1beta1.Printable(text) }
