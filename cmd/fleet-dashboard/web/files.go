package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

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

// historyFile returns the history of a placement as a file.
func historyFile(v *visit, format string) (file, error) {
	p, entries, err := v.history()
	if err != nil {
		return file{}, err
	}
	return rowsFile(p.Name+"-history", format, fleetview.HistoryColumns(v.site.Clock.Now()), entries)
}

// rowsFile returns rows as CSV, or as JSON with one of them a line.
func rowsFile[R any](name, format string, columns []fleetview.Column[R], rows []R) (file, error) {
	var out bytes.Buffer
	switch format {
	case "jsonl":
		encoder := json.NewEncoder(&out)
		for _, row := range rows {
			if err := encoder.Encode(row); err != nil {
				return file{}, fmt.Errorf("writing a line of %s: %w", name, err)
			}
		}
		return file{name + ".jsonl", "application/jsonl; charset=utf-8", out.Bytes()}, nil
	case "csv":
		if err := fleetview.WriteCSV(&out, columns, rows); err != nil {
			return file{}, err
		}
		return file{name + ".csv", "text/csv; charset=utf-8", out.Bytes()}, nil
	}
	return file{}, errNoFormat
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
	waves := made.Waves()
	more := max(0, len(waves)-clustersShown)
	return compose("Plan of "+run.Name, "runs", false, piece{"plan", "plan-page", struct {
		Run   hub.Ref
		Plan  *plan.Excerpt
		Waves []plan.Wave
		More  int
		// Rehearsals are what the clusters of its stages have said.
		Rehearsals []fleetview.Rehearsal
	}{run.Ref, made.Excerpt(planHash(run.Run)), waves[:len(waves)-more], more, fleetview.RehearsalsOf(run.Run, "")}})
}

// diffView is what the page of a difference shows.
type diffView struct {
	Placement hub.Ref
	From, To  string
	Options   []option
	// Told says that two snapshots were compared, and Plan is what differs.
	Told bool
	plan.Excerpt
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
		view.Excerpt = *plan.Plan{Changes: []plan.Group{group}}.Excerpt("")
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
