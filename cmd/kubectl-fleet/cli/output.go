package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// Formats a command can print in.
const (
	FormatTable = "table"
	FormatWide  = "wide"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
)

// Output is how a command prints.
type Output struct {
	// Format is one of the formats; empty means a table.
	Format string
	// NoHeaders leaves the headings of tables out.
	NoHeaders bool
}

// AddFlags adds -o and --no-headers to a command.
func (o *Output) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.Format, "output", "o", FormatTable, "How to print: table, wide, json or yaml.")
	cmd.Flags().BoolVar(&o.NoHeaders, "no-headers", false, "Print tables without their headings.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
}

func formats() []string { return []string{FormatTable, FormatWide, FormatJSON, FormatYAML} }

// Validate refuses a format there is not.
func (o *Output) Validate() error {
	if o.Format == "" || slices.Contains(formats(), o.Format) {
		return nil
	}
	return fmt.Errorf("--output %q is not a format: use one of %s", o.Format, strings.Join(formats(), ", "))
}

// Structured says whether the output is for programs.
func (o *Output) Structured() bool { return o.Format == FormatJSON || o.Format == FormatYAML }

// Wide says whether tables show every column.
func (o *Output) Wide() bool { return o.Format == FormatWide }

// Encode prints a value as JSON or YAML.
func (o *Output) Encode(out io.Writer, value any) error {
	encode := func(v any) ([]byte, error) { return yaml.Marshal(v) }
	if o.Format == FormatJSON {
		encode = func(v any) ([]byte, error) {
			data, err := json.MarshalIndent(v, "", "    ")
			return append(data, '\n'), err
		}
	}
	data, err := encode(value)
	if err != nil {
		return fmt.Errorf("encoding as %s: %w", o.Format, err)
	}
	if _, err := out.Write(data); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// Column is a column of a table.
type Column struct {
	// Name is its heading.
	Name string
	// Wide columns show in wide output only.
	Wide bool
}

// PrintTable prints rows as kubectl does.
func (o *Output) PrintTable(out io.Writer, columns []Column, rows [][]string) error {
	table := &metav1.Table{}
	for _, column := range columns {
		definition := metav1.TableColumnDefinition{Name: column.Name, Type: "string"}
		if column.Wide {
			definition.Priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, definition)
	}
	for _, row := range rows {
		cells := make([]any, len(row))
		for i, cell := range row {
			cells[i] = orNone(cell)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	printer := printers.NewTablePrinter(printers.PrintOptions{Wide: o.Wide(), NoHeaders: o.NoHeaders})
	if err := printer.PrintObj(table, out); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

func orNone(cell string) string {
	if cell == "" {
		return "-"
	}
	return cell
}
