package base

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// columnGap is what is between two columns.
const columnGap = 3

// Table is what there is to show of a kind.
type Table struct {
	Kind    hub.Kind
	Columns []cli.Column
	Rows    [][]string
	// spare are the columns that a terminal which is too narrow for all does without, the first of them first.
	spare []string
}

// TableOf writes the cells of rows.
func TableOf[R any](kind hub.Kind, columns []fleetview.Column[R], rows []R) Table {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c fleetview.Column[R]) bool { return c.Name == "" })
	made := Table{Kind: kind, Rows: make([][]string, len(rows))}
	for _, column := range columns {
		made.Columns = append(made.Columns, cli.Column{Name: column.Name, Wide: column.Wide})
		for i, row := range rows {
			made.Rows[i] = append(made.Rows[i], column.TextOf(row))
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

// Show prints rows as a table, or for programs the objects that they are about. None are said to be none.
func Show[R any](v *Viewing, objects any, columns []fleetview.Column[R], rows []R, none string) error {
	if v.Structured() {
		return v.Encode(v.Streams.Out, objects)
	}
	if len(rows) == 0 && none != "" {
		cli.Printf(v.Streams.ErrOut, "%s\n", none)
		return nil
	}
	return PrintRows(v, columns, rows)
}

// PrintRows prints rows as a table.
func PrintRows[R any](v *Viewing, columns []fleetview.Column[R], rows []R) error {
	made := TableOf("", columns, rows)
	return v.PrintTable(v.Streams.Out, made.Columns, made.Rows)
}

// Narrow returns tables without the columns for which a terminal has no room.
func Narrow(tables []Table, width int, wide bool) []Table {
	if width <= 0 {
		return tables
	}
	tables = slices.Clone(tables)
	for i := range tables {
		for _, name := range tables[i].spare {
			total := -columnGap
			for _, column := range tables[i].Widths(wide) {
				total += column + columnGap
			}
			if total <= width {
				break
			}
			tables[i] = tables[i].without(name)
		}
	}
	return tables
}

// without returns the table without a column.
func (t Table) without(name string) Table {
	at := slices.IndexFunc(t.Columns, func(c cli.Column) bool { return c.Name == name })
	if at < 0 {
		return t
	}
	t.Columns = slices.Delete(slices.Clone(t.Columns), at, at+1)
	rows := make([][]string, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = slices.Delete(slices.Clone(row), at, at+1)
	}
	t.Rows = rows
	return t
}

// Widths returns how wide the columns are.
func (t Table) Widths(wide bool) []int {
	var widths []int
	for i, column := range t.Columns {
		if column.Wide && !wide {
			continue
		}
		width := utf8.RuneCountInString(column.Name)
		for _, row := range t.Rows {
			width = max(width, utf8.RuneCountInString(row[i]))
		}
		widths = append(widths, width)
	}
	return widths
}

// Line returns a row below columns that have widths. Among several tables it begins with its kind.
func (t Table) Line(row int, widths []int, wide, several bool) string {
	line := &strings.Builder{}
	shown := 0
	for i, column := range t.Columns {
		if column.Wide && !wide {
			continue
		}
		cell := t.Rows[row][i]
		if cell == "" {
			cell = "-"
		}
		if several && shown == 0 {
			cell = string(t.Kind) + "/" + cell
		}
		line.WriteString(cell + strings.Repeat(" ", max(widths[shown]-utf8.RuneCountInString(cell), 0)+columnGap))
		shown++
	}
	return strings.TrimRight(line.String(), " ")
}
