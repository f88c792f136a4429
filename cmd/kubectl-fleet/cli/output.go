package cli

import (
	"bytes"
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
	// FormatName is kind.group/name, a line an object.
	FormatName = "name"
	// FormatJSONPath is followed by = and a template, FormatColumns by = and columns, as for kubectl.
	FormatJSONPath = "jsonpath"
	FormatColumns  = "custom-columns"
)

// Output is how a command prints.
type Output struct {
	// Format is one of the formats, with what belongs to it, such as jsonpath={.items}; empty means a table.
	Format string
	// NoHeaders leaves the headings of tables out.
	NoHeaders bool
	// Objects says that the command prints objects of the hub, which have names and columns.
	Objects bool
	// Further are formats that the command itself prints.
	Further []string
}

// AddFlags adds -o and --no-headers to a command.
func (o *Output) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.Format, "output", "o", FormatTable, "How to print: "+strings.Join(o.formatNames(), ", ")+".")
	cmd.Flags().BoolVar(&o.NoHeaders, "no-headers", false, "Print tables without their headings.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.formatNames(), cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
}

// formatNames returns those that the command can print in, as its help and its errors list them.
func (o *Output) formatNames() []string {
	all := []string{FormatTable, FormatWide, FormatJSON, FormatYAML, FormatJSONPath + "=TEMPLATE"}
	if o.Objects {
		all = append(all, FormatName, FormatColumns+"=SPEC")
	}
	return append(all, o.Further...)
}

// Validate refuses a format there is not.
func (o *Output) Validate() error {
	format, behind, _ := strings.Cut(o.Format, "=")
	switch {
	case o.Format == "", slices.Contains(o.formatNames(), o.Format) && behind == "":
		return nil
	case format == FormatJSONPath:
		_, err := readTemplate(behind)
		return err
	case format == FormatColumns && o.Objects:
		_, err := readColumns(behind)
		return err
	}
	return Usagef("--output %q is not a format: use one of %s", o.Format, strings.Join(o.formatNames(), ", "))
}

// Structured reports whether the output is for programs.
func (o *Output) Structured() bool {
	format, _, _ := strings.Cut(o.Format, "=")
	return slices.Contains([]string{FormatJSON, FormatYAML, FormatName, FormatJSONPath, FormatColumns}, format)
}

// Wide reports whether tables show every column.
func (o *Output) Wide() bool { return o.Format == FormatWide }

// Encode prints a value in a format for programs.
func (o *Output) Encode(out io.Writer, value any) error {
	data, err := json.MarshalIndent(value, "", "    ")
	if err != nil {
		return fmt.Errorf("encoding as %s: %w", o.Format, err)
	}
	data = append(spellOutCommands(data), '\n')
	format, behind, _ := strings.Cut(o.Format, "=")
	switch format {
	case FormatJSON:
	case FormatName:
		data, err = namesIn(data)
	case FormatJSONPath:
		data, err = fillTemplate(data, behind)
	case FormatColumns:
		return o.printColumns(out, data, behind)
	default:
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

// LineEncoder prints values as JSON, each in a line. A value that is the one before is left out.
func LineEncoder(out io.Writer) func(value any) error {
	var before []byte
	return func(value any) error {
		data, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encoding as JSON: %w", err)
		}
		if bytes.Equal(data, before) {
			return nil
		}
		before = data
		if _, err := out.Write(append(spellOutCommands(data), '\n')); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		return nil
	}
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
