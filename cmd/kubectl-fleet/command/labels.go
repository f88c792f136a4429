package command

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// labelled is how a verb selects by labels and shows them.
type labelled struct {
	// selector is as the user has written it.
	selector string
	parsed   labels.Selector
	// columns are the labels that have a column each.
	columns []string
	all     bool
}

func (l *labelled) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&l.selector, "selector", "l", "", "Show only what has these labels, as in: -l region=west,tier!=test.")
	cmd.Flags().StringSliceVarP(&l.columns, "label-columns", "L", nil, "Labels to show in a column each, as in: -L region,tier.")
	cmd.Flags().BoolVar(&l.all, "show-labels", false, "Show all labels in a column; -o wide does so for members.")
}

// parse reads the selector.
func (l *labelled) parse() (err error) {
	if l.parsed, err = labels.Parse(l.selector); err != nil {
		return cli.Usagef("--selector %q is no label selector, such as region=west: %v", l.selector, err)
	}
	return nil
}

func (l *labelled) selects(of map[string]string) bool { return l.parsed.Matches(labels.Set(of)) }

// labelColumns are the columns for labels; wide says that wide tables have all of them.
func (l *labelled) labelColumns(wide bool) []cli.Column {
	var columns []cli.Column
	for _, key := range l.columns {
		columns = append(columns, cli.Column{Name: key[strings.LastIndex(key, "/")+1:]})
	}
	if l.all || wide {
		columns = append(columns, cli.Column{Name: "Labels", Wide: !l.all})
	}
	return columns
}

// labelCells returns the cells of the columns for labels. That of all labels comes last, and a table without it leaves it out.
func (l *labelled) labelCells(of map[string]string) []string {
	var cells []string
	for _, key := range l.columns {
		cells = append(cells, of[key])
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		all = append(all, key+"="+of[key])
	}
	return append(cells, strings.Join(all, ","))
}
