package command

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
)

// labelled is how a command selects by labels and shows them.
type labelled struct {
	base.Selector
	// columns are the labels that have a column each.
	columns []string
	all     bool
}

func (l *labelled) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&l.Text, "selector", "l", "", "Show only what has these labels, as in: -l region=west,tier!=test.")
	cmd.Flags().StringSliceVarP(&l.columns, "label-columns", "L", nil, "Labels to show in a column each, as in: -L region,tier.")
	cmd.Flags().BoolVar(&l.all, "show-labels", false, "Show all labels in a column; -o wide does so for members.")
}

// labelColumns returns the columns for labels; wide says that wide tables have all of them.
func labelColumns[R any](l *labelled, wide bool, labelsOf func(R) map[string]string) []fleetview.Column[R] {
	var columns []fleetview.Column[R]
	for _, key := range l.columns {
		columns = append(columns, fleetview.Column[R]{
			Name: key[strings.LastIndex(key, "/")+1:], Text: func(row R) string { return labelsOf(row)[key] },
		})
	}
	if l.all || wide {
		columns = append(columns, fleetview.Column[R]{Name: "Labels", Wide: !l.all, Text: func(row R) string {
			of := labelsOf(row)
			var all []string
			for _, key := range slices.Sorted(maps.Keys(of)) {
				all = append(all, key+"="+of[key])
			}
			return strings.Join(all, ",")
		}})
	}
	return columns
}
