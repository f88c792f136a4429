package web

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// file is what a browser keeps of a page.
type file struct {
	name, kind string
	content    []byte
}

// errNoFormat means that a page cannot be had in a format.
var errNoFormat = &missing{what: "such format"}

// download answers with a page, or with the file of it that is asked for by format.
func (s *Server) download(shown http.Handler, make func(v *visit, format string) (file, error)) http.Handler {
	return s.visited(func(w http.ResponseWriter, v *visit) {
		format := v.URL.Query().Get("format")
		if format == "" {
			shown.ServeHTTP(w, v.Request)
			return
		}
		made, err := make(v, format)
		if err != nil {
			v.failed(w, err)
			return
		}
		w.Header().Set("Content-Type", made.kind)
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", made.name))
		_, _ = w.Write(made.content) // a browser that went away needs nothing
	})
}

// historyFile returns the history of a placement as CSV, or as JSON with one entry a line.
func historyFile(v *visit, format string) (file, error) {
	p, entries, err := v.history()
	if err != nil {
		return file{}, err
	}
	var out bytes.Buffer
	switch format {
	case "jsonl":
		encoder := json.NewEncoder(&out)
		for _, e := range entries {
			if err := encoder.Encode(e); err != nil {
				return file{}, fmt.Errorf("writing the history: %w", err)
			}
		}
		return file{p.Name + "-history.jsonl", "application/jsonl; charset=utf-8", out.Bytes()}, nil
	case "csv":
		writer := csv.NewWriter(&out)
		rows := make([][]string, 1+len(entries))
		for _, column := range fleetview.HistoryColumns(v.site.Clock.Now()) {
			if column.File == "" {
				continue
			}
			rows[0] = append(rows[0], column.File)
			for i, e := range entries {
				rows[1+i] = append(rows[1+i], cellText(column.TextOf(e)))
			}
		}
		if err := writer.WriteAll(rows); err != nil {
			return file{}, fmt.Errorf("writing the history: %w", err)
		}
		return file{p.Name + "-history.csv", "text/csv; charset=utf-8", out.Bytes()}, nil
	}
	return file{}, errNoFormat
}

// formulaInside is what would be a formula in a cell of its own, where a spreadsheet takes another character than the comma for the end of
// a cell: quotes around the cell do not help there.
var formulaInside = regexp.MustCompile(`([;|\t\n]["'\s]*)([=+@＝＋－＠-])`)

// cellText writes a text so that a spreadsheet takes it for nothing but text: it would carry out what looks like a formula, also after
// white space.
func cellText(text string) string {
	text = strings.Map(printed, text)
	if trimmed := strings.TrimSpace(text); trimmed != "" && strings.ContainsRune("=+-@＝＋－＠", []rune(trimmed)[0]) {
		text = "'" + text
	}
	return formulaInside.ReplaceAllString(text, "$1'$2")
}

// printed returns a character as a cell has it: white space is a space or the end of a line, and what cannot be seen is left out.
func printed(r rune) rune {
	switch {
	case r == '\n', unicode.IsPrint(r):
		return r
	case unicode.IsSpace(r):
		return ' '
	}
	return -1
}

func planPage(v *visit) (page, error) {
	run, err := v.run()
	if err != nil {
		return page{}, err
	}
	made, err := v.person.Reading.Plan(v.Context(), run.Run)
	if err != nil {
		return page{}, err
	}
	waves := wavesOf(made)
	more := max(0, len(waves)-clustersShown)
	return compose("Plan of "+run.Name, "runs", false, piece{"plan", "plan-page", struct {
		Run   hub.Ref
		Plan  *planView
		Waves []waveRow
		More  int
	}{run.Ref, planViewOf(made, planHash(run.Run)), waves[:len(waves)-more], more}})
}

// waveRow is a wave of a plan, with what keeps it from beginning at once.
type waveRow struct {
	Stage    string
	Number   int
	Opens    *time.Time
	For      string
	Clusters string
}

func wavesOf(made plan.Plan) []waveRow {
	var rows []waveRow
	for _, stage := range made.Stages {
		for i, wave := range stage.Waves {
			row := waveRow{Stage: stage.Name, Number: i + 1}
			for _, opening := range stage.Openings {
				if opening.Wave == row.Number {
					row.Opens = opening.Opens
					row.For = opening.For
				}
			}
			var names []string
			for _, cluster := range wave {
				names = append(names, cluster.Name)
			}
			row.Clusters = updaterun.ListNames(names)
			rows = append(rows, row)
		}
	}
	return rows
}

// diffView is what the page of a difference shows.
type diffView struct {
	Placement hub.Ref
	From, To  string
	Options   []option
	// Told says that two snapshots were compared, and Plan is what differs.
	Told bool
	planView
	File string
}

// chosen returns the snapshots that a request compares; false if it names none yet.
func chosen(query url.Values) (from, to int, both bool) {
	from, errFrom := strconv.Atoi(query.Get("from"))
	to, errTo := strconv.Atoi(query.Get("to"))
	return from, to, errFrom == nil && errTo == nil
}

func diffPage(v *visit) (page, error) {
	p, err := v.placement()
	if err != nil {
		return page{}, err
	}
	reading := v.person.Reading
	snapshots, err := reading.Snapshots(v.Context(), p.Ref)
	if err != nil {
		return page{}, err
	}
	query := v.URL.Query()
	view := diffView{Placement: p.Ref, From: query.Get("from"), To: query.Get("to"), Options: snapshotOptions(snapshots)[1:]}
	from, to, both := chosen(v.URL.Query())
	if both {
		changes, err := reading.Diff(v.Context(), p.Ref, from, to)
		if err != nil {
			return page{}, err
		}
		// A plan for one cluster that has one and gets the other.
		group := plan.Group{From: strconv.Itoa(from), To: strconv.Itoa(to), Objects: changes}
		view.Told = true
		view.planView = *planViewOf(plan.Plan{Changes: []plan.Group{group}}, "")
		query.Set("format", "diff")
		view.File = "?" + query.Encode()
	}
	return compose("Difference of "+p.Name, "placements", false, piece{"diff", "diff", view})
}

// diffFile returns all that differs between two snapshots.
func diffFile(v *visit, format string) (file, error) {
	p, err := v.placement()
	if err != nil {
		return file{}, err
	}
	from, to, both := chosen(v.URL.Query())
	if format != "diff" || !both {
		return file{}, errNoFormat
	}
	changes, err := v.person.Reading.Diff(v.Context(), p.Ref, from, to)
	if err != nil {
		return file{}, err
	}
	var out bytes.Buffer
	for _, change := range changes {
		fmt.Fprintf(&out, "--- %s, snapshot %d\n+++ %s, snapshot %d (%s)\n", change.Object, from, change.Object, to, change.Change)
		for _, line := range change.Lines {
			fmt.Fprintln(&out, line)
		}
	}
	return file{fmt.Sprintf("%s-%d-%d.diff", p.Name, from, to), "text/plain; charset=utf-8", []byte(tree.Printable(out.String()))}, nil
}
