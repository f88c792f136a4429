package command

import (
	"slices"

	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// table is what there is to show of a kind.
type table struct {
	kind    hub.Kind
	columns []cli.Column
	rows    [][]string
	// spare are the columns that a terminal which is too narrow for all does without, the first of them first.
	spare []string
}

// tableOf writes the cells of rows.
func tableOf[R any](kind hub.Kind, columns []fleetview.Column[R], rows []R) table {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c fleetview.Column[R]) bool { return c.Name == "" })
	made := table{kind: kind, rows: make([][]string, len(rows))}
	for _, column := range columns {
		made.columns = append(made.columns, cli.Column{Name: column.Name, Wide: column.Wide})
		for i, row := range rows {
			made.rows[i] = append(made.rows[i], column.TextOf(row))
		}
	}
	slices.SortStableFunc(columns, func(a, b fleetview.Column[R]) int { return a.Spare - b.Spare })
	for _, column := range columns {
		if column.Spare > 0 {
			made.spare = append(made.spare, column.Name)
		}
	}
	return made
}

// show prints rows as a table, or for programs the objects that they are about. None are said to be none.
func show[R any](v *base.Viewing, objects any, columns []fleetview.Column[R], rows []R, none string) error {
	if v.Structured() {
		return v.Encode(v.Streams.Out, objects)
	}
	if len(rows) == 0 && none != "" {
		cli.Printf(v.Streams.ErrOut, "%s\n", none)
		return nil
	}
	made := tableOf("", columns, rows)
	return v.PrintTable(v.Streams.Out, made.columns, made.rows)
}
