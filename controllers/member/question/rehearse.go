package question

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/work"
)

const (
	// maxManifests is how many bytes the manifests of a question may have when they are unpacked.
	maxManifests = 16 << 20
	// maxAnswer is how many bytes the packed list of outcomes may have.
	maxAnswer = 64 << 10
)

// rehearse answers what a change would do on the cluster.
func rehearse(ctx context.Context, a *Answerer, question *fleetflowv1alpha1.MemberQuestion, status *fleetflowv1alpha1.MemberQuestionStatus) error {
	spec := &question.Spec
	if spec.Rehearse == nil {
		return invalid("rehearse is missing")
	}
	change, err := readChange(spec.Rehearse)
	if err != nil {
		return err
	}
	found := a.Rehearse(ctx, change)
	status.Rehearsal, err = packAnswer(spec.Rehearse.Revision, found, change)
	return err
}

// readChange reads the change that a question is about.
func readChange(q *fleetflowv1alpha1.RehearseQuestion) (work.Change, error) {
	change := work.Change{Strategy: q.Strategy, Removed: q.RemovedWorks, KeepRemoved: q.KeepRemoved}
	lists, err := readManifests(q.Manifests)
	if err != nil {
		return change, err
	}
	if len(lists) != len(q.Works) {
		return change, invalid("manifests are of %d Works, and works has %d", len(lists), len(q.Works))
	}
	named := map[string]bool{"": true}
	for _, name := range q.RemovedWorks {
		if named[name] {
			return change, invalid("removedWorks names no Work, or one twice: %q", name)
		}
		named[name] = true
	}
	for i, w := range q.Works {
		if named[w.Name] {
			return change, invalid("works names no Work, or one twice: %q", w.Name)
		}
		named[w.Name] = true
		if int(w.Manifests) != len(lists[i]) {
			return change, invalid("Work %s is to have %d manifests, and %d are there", w.Name, w.Manifests, len(lists[i]))
		}
		change.Works = append(change.Works, work.ChangedWork{Name: w.Name, Manifests: lists[i]})
	}
	return change, nil
}

// readManifests unpacks lists of manifests. Nothing packed is no list.
func readManifests(packed []byte) (lists [][]placementv1beta1.Manifest, err error) {
	if len(packed) == 0 {
		return nil, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, invalid("manifests are not compressed by gzip: %v", err)
	}
	data, err := io.ReadAll(io.LimitReader(reader, maxManifests+1))
	switch {
	case err != nil:
		return nil, invalid("manifests cannot be unpacked: %v", err)
	case len(data) > maxManifests:
		return nil, invalid("manifests are larger than %d MiB when they are unpacked", maxManifests>>20)
	}
	if err := json.Unmarshal(data, &lists); err != nil {
		return nil, invalid("manifests are no list of lists of objects: %s", withoutContent(err))
	}
	return lists, nil
}

// withoutContent describes an error of reading JSON without what was read, which may be of a Secret.
func withoutContent(err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("byte %d is not as in JSON", syntax.Offset)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("byte %d is of another type", wrong.Offset)
	}
	return "they are not as in JSON"
}

// packAnswer makes the answer of the outcomes. It is pure.
func packAnswer(revision string, found []fleetflowv1alpha1.RehearsedObject, change work.Change) (*fleetflowv1alpha1.RehearsalAnswer, error) {
	out := &fleetflowv1alpha1.RehearsalAnswer{Revision: revision, Counts: countOutcomes(found), Digest: digestOf(found, change)}
	packed, err := pack(found)
	if err != nil {
		return nil, err
	}
	if len(packed) > maxAnswer {
		if packed, out.Omitted, err = packFirst(found); err != nil {
			return nil, err
		}
	}
	out.Objects = packed
	return out, nil
}

// severities are the outcomes in the order in which they matter.
var severities = []fleetflowv1alpha1.RehearsalOutcome{
	fleetflowv1alpha1.RehearsalRefused, fleetflowv1alpha1.RehearsalConflicts, fleetflowv1alpha1.RehearsalUnknown,
	fleetflowv1alpha1.RehearsalRemoves, fleetflowv1alpha1.RehearsalCreates, fleetflowv1alpha1.RehearsalChanges, fleetflowv1alpha1.RehearsalSame,
}

// packFirst packs as many objects as there is room for, what matters most first, and tells how many are left out.
func packFirst(found []fleetflowv1alpha1.RehearsedObject) ([]byte, int32, error) {
	sorted := slices.Clone(found)
	slices.SortStableFunc(sorted, func(a, b fleetflowv1alpha1.RehearsedObject) int {
		return cmp.Compare(slices.Index(severities, a.Outcome), slices.Index(severities, b.Outcome))
	})
	var fits []byte
	low := 0
	for high := len(sorted); low < high; {
		middle := (low + high + 1) / 2
		packed, err := pack(sorted[:middle])
		if err != nil {
			return nil, 0, err
		}
		if len(packed) > maxAnswer {
			high = middle - 1
			continue
		}
		low = middle
		fits = packed
	}
	return fits, int32(len(sorted) - low), nil //nolint:gosec // a question has fewer objects
}

func pack(objects []fleetflowv1alpha1.RehearsedObject) ([]byte, error) {
	if objects == nil {
		objects = []fleetflowv1alpha1.RehearsedObject{}
	}
	data, err := json.Marshal(objects)
	if err != nil {
		return nil, fmt.Errorf("encoding the outcomes: %w", err)
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(data); err != nil {
		return nil, fmt.Errorf("compressing the outcomes: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compressing the outcomes: %w", err)
	}
	return packed.Bytes(), nil
}

func countOutcomes(found []fleetflowv1alpha1.RehearsedObject) (counts fleetflowv1alpha1.RehearsalCounts) {
	of := map[fleetflowv1alpha1.RehearsalOutcome]*int32{
		fleetflowv1alpha1.RehearsalRefused: &counts.Refused, fleetflowv1alpha1.RehearsalConflicts: &counts.Conflicts,
		fleetflowv1alpha1.RehearsalUnknown: &counts.Unknown, fleetflowv1alpha1.RehearsalRemoves: &counts.Removes,
		fleetflowv1alpha1.RehearsalCreates: &counts.Creates, fleetflowv1alpha1.RehearsalChanges: &counts.Changes,
		fleetflowv1alpha1.RehearsalSame: &counts.Same,
	}
	for _, o := range found {
		*of[o.Outcome]++
	}
	return counts
}

// digestOf returns the sum of what was found, of each object its outcome, who is behind it and the fields, and of the manifests, as long
// values are told in part. It leaves out when it was found, the generation of the objects, and words, in which counts and times change
// although the outcome stays.
func digestOf(found []fleetflowv1alpha1.RehearsedObject, change work.Change) string {
	lines := make([]string, 0, len(found))
	for _, w := range change.Works {
		for _, m := range w.Manifests {
			of := sha256.Sum256(m.Raw)
			lines = append(lines, "manifest "+hex.EncodeToString(of[:]))
		}
	}
	for _, o := range found {
		o.Generation = 0
		o.Message = ""
		o.Object.Ordinal = 0
		line, err := json.Marshal(o)
		if err != nil {
			continue // it is texts and numbers
		}
		lines = append(lines, string(line))
	}
	slices.Sort(lines)
	sum := sha256.New()
	for _, line := range lines {
		_, _ = sum.Write([]byte(line + "\n")) // it never fails
	}
	return hex.EncodeToString(sum.Sum(nil))
}
