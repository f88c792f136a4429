package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
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
	data, err := json.MarshalIndent(value, "", "    ")
	data = append(spellOutCommands(data), '\n')
	if err == nil && o.Format != FormatJSON {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		return fmt.Errorf("encoding as %s: %w", o.Format, err)
	}
	if _, err := out.Write(data); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// spellOutCommands writes characters on which terminals act as JSON can, which is the same to programs.
func spellOutCommands(data []byte) []byte {
	var out []byte
	for _, r := range string(data) {
		if text := string(r); tree.Printable(text) != text {
			out = fmt.Appendf(out, `\u%04x`, r)
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return out
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
			cells[i] = tree.Printable(orNone(cell))
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
