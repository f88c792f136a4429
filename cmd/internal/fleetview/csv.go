package fleetview

import (
	"encoding/csv"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
)

// WriteCSV writes rows as a file that spreadsheets read, with the columns that files have.
func WriteCSV[R any](out io.Writer, columns []Column[R], rows []R) error {
	lines := make([][]string, 1+len(rows))
	for _, column := range columns {
		if column.File == "" {
			continue
		}
		lines[0] = append(lines[0], column.File)
		for i, row := range rows {
			lines[1+i] = append(lines[1+i], cellText(column.TextOf(row)))
		}
	}
	if err := csv.NewWriter(out).WriteAll(lines); err != nil {
		return fmt.Errorf("writing a table of %d rows: %w", len(rows), err)
	}
	return nil
}

// formulaInside is what would be a formula in a cell of its own, where a spreadsheet takes another character than the comma for the end of
// a cell: quotes around the cell do not help there.
var formulaInside = regexp.MustCompile(`([;|\t\n]["'\s]*)([=+@＝＋－＠-])`)

// cellText writes a text so that a spreadsheet takes it for nothing but text: it would carry out what looks like a formula, also after
// white space.
func cellText(text string) string {
	text = strings.Map(printableRune, text)
	if trimmed := strings.TrimSpace(text); trimmed != "" && strings.ContainsRune("=+-@＝＋－＠", []rune(trimmed)[0]) {
		text = "'" + text
	}
	return formulaInside.ReplaceAllString(text, "$1'$2")
}

// printableRune returns a character as a cell has it: white space is a space or the end of a line, and what cannot be seen is left out.
func printableRune(r rune) rune {
	switch {
	case r == '\n', unicode.IsPrint(r):
		return r
	case unicode.IsSpace(r):
		return ' '
	}
	return -1
}
