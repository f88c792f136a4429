package rehearsal

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

const (
	// maxUnpacked bounds what the objects of an answer may become once they are unpacked.
	maxUnpacked = 4 << 20
	// maxObjects bounds how many objects an answer may have: they take more memory than their text.
	maxObjects = 50_000
	// maxRemoved bounds how many objects an answer may say are removed: the hub does not know them.
	maxRemoved = 10_000
)

// Line is what a change would do to one object of a cluster, or to the cluster itself if it names none.
type Line struct {
	Outcome fleetflowv1alpha1.RehearsalOutcome
	// Object as kind namespace/name.
	Object, By, Message string
	Fields              []string
}

// Answer is what a change would do on one cluster.
type Answer struct {
	// Outcome is that of the line that matters most.
	Outcome fleetflowv1alpha1.RehearsalOutcome
	Lines   []Line
	// Counts are of objects.
	Counts fleetflowv1alpha1.RehearsalCounts
}

// UnknownAnswer is that of a cluster of which it is not known what a change would do.
func UnknownAnswer(why string) Answer {
	return Answer{
		Outcome: fleetflowv1alpha1.RehearsalUnknown,
		Lines:   []Line{{Outcome: fleetflowv1alpha1.RehearsalUnknown, Message: clean(why, maxMessage)}},
	}
}

// IsAnswered reports whether a member has said what it has to say to a question.
func IsAnswered(question *fleetflowv1alpha1.MemberQuestion) bool {
	answered := meta.FindStatusCondition(question.Status.Conditions, fleetflowv1alpha1.ConditionTypeAnswered)
	return answered != nil && answered.Status != metav1.ConditionUnknown
}

// Read returns what a member has answered to a question. What cannot be believed makes the cluster unknown, and says why.
func Read(question *fleetflowv1alpha1.MemberQuestion) Answer {
	answered := meta.FindStatusCondition(question.Status.Conditions, fleetflowv1alpha1.ConditionTypeAnswered)
	said := question.Status.Rehearsal
	asked := question.Spec.Rehearse
	switch {
	case answered == nil || answered.Status == metav1.ConditionUnknown:
		return UnknownAnswer("no answer")
	case answered.Status == metav1.ConditionFalse && answered.Reason == fleetflowv1alpha1.ReasonQuestionUnknown:
		return UnknownAnswer("the agent of the cluster is too old to answer the question")
	case question.Spec.Type == fleetflowv1alpha1.QuestionPullImages:
		return readImages(question)
	case answered.Status == metav1.ConditionFalse: // the owner has switched answers off, there was no time, or it cannot be read
		return UnknownAnswer("the cluster has no answer: " + answered.Message)
	case said == nil || asked == nil:
		return UnknownAnswer("the answer is empty")
	case said.Revision != asked.Revision:
		return UnknownAnswer(fmt.Sprintf("the answer is about revision %s, and revision %s was asked for", said.Revision, asked.Revision))
	}
	objects, err := Objects(said)
	if err != nil {
		return UnknownAnswer("the answer cannot be read: " + err.Error())
	}
	answer := Answer{}
	for i := range objects {
		line := lineOf(&objects[i])
		count := answer.Counts.Of(line.Outcome)
		if count == nil || line.Outcome == fleetflowv1alpha1.RehearsalPulled {
			return UnknownAnswer("the answer cannot be read: there is no outcome " + string(line.Outcome))
		}
		*count++
		answer.Lines = append(answer.Lines, line)
	}
	if problem := answer.check(asked, said, len(objects)); problem != "" {
		return UnknownAnswer(problem)
	}
	answer.judge()
	return answer
}

// check compares an answer with what was asked, and takes over the counts of objects that the answer has no room for.
func (a *Answer) check(asked *fleetflowv1alpha1.RehearseQuestion, said *fleetflowv1alpha1.RehearsalAnswer, told int) (problem string) {
	total := int64(0)
	for _, work := range asked.Works {
		total += int64(work.Manifests)
	}
	if said.Omitted != 0 {
		for _, outcome := range fleetflowv1alpha1.RehearsalOutcomes() {
			if *said.Counts.Of(outcome) < *a.Counts.Of(outcome) {
				return "the counts of the answer are not those of its objects"
			}
		}
		if said.Omitted < 0 || said.Counts.Total() != int64(told)+int64(said.Omitted) {
			return "the counts of the answer are not those of its objects"
		}
		a.Counts = said.Counts
	}
	present := a.Counts.Total() - int64(a.Counts.Removes)
	switch {
	case present > total || a.Counts.Removes > maxRemoved:
		return fmt.Sprintf("the answer is about %d objects, and %d were asked for", a.Counts.Total(), total)
	case present < total:
		return fmt.Sprintf("the answer is about %d of the %d objects that were asked for", present, total)
	}
	return ""
}

// judge finds the outcome of the cluster, and says of outcomes that the answer has no line for how many objects have them.
func (a *Answer) judge() {
	a.Outcome = fleetflowv1alpha1.RehearsalSame
	told := fleetflowv1alpha1.RehearsalCounts{}
	for _, line := range a.Lines {
		*told.Of(line.Outcome)++
	}
	for _, outcome := range slices.Backward(fleetflowv1alpha1.RehearsalOutcomes()) {
		count := *a.Counts.Of(outcome)
		if count > 0 {
			a.Outcome = outcome
		}
		if count > *told.Of(outcome) && outcome != fleetflowv1alpha1.RehearsalSame {
			a.Lines = append(a.Lines, Line{Outcome: outcome, Message: "more objects, of which the answer has no room to tell"})
		}
	}
}

// add takes a line up that the hub knows without asking.
func (a *Answer) add(line Line) {
	a.Lines = append(a.Lines, line)
	if rank(line.Outcome) < rank(a.Outcome) {
		a.Outcome = line.Outcome
	}
}

// digest tells what was found apart from what else could have been: neither times nor numbers in words are in it.
func (a *Answer) digest(cluster string) string {
	lines := make([]string, 0, len(a.Lines))
	for _, line := range a.Lines {
		lines = append(lines, fmt.Sprintf("%q %q %q %q %q", line.Outcome, line.Object, line.By, normalise(line.Message, cluster), line.Fields))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])
}

// rank orders outcomes by how much they matter, what matters most first.
func rank(outcome fleetflowv1alpha1.RehearsalOutcome) int {
	if at := slices.Index(fleetflowv1alpha1.RehearsalOutcomes(), outcome); at >= 0 {
		return at
	}
	return len(fleetflowv1alpha1.RehearsalOutcomes())
}

// Objects unpacks the objects of an answer. They are a member's words; lines of an Answer are harmless.
func Objects(answer *fleetflowv1alpha1.RehearsalAnswer) ([]fleetflowv1alpha1.RehearsedObject, error) {
	if len(answer.Objects) == 0 {
		return nil, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(answer.Objects))
	if err != nil {
		return nil, errors.New("it is not compressed by gzip")
	}
	raw, err := io.ReadAll(io.LimitReader(reader, maxUnpacked+1))
	if err != nil {
		return nil, errors.New("it is damaged")
	}
	if len(raw) > maxUnpacked {
		return nil, fmt.Errorf("it has more than %d MiB", maxUnpacked>>20)
	}
	var objects []fleetflowv1alpha1.RehearsedObject
	list := json.NewDecoder(bytes.NewReader(raw))
	begin, err := list.Token()
	if err == nil && begin == nil {
		return nil, nil
	}
	if err != nil || begin != json.Delim('[') {
		return nil, errors.New("it is no list of objects")
	}
	for list.More() {
		if len(objects) == maxObjects {
			return nil, fmt.Errorf("it has more than %d objects", maxObjects)
		}
		var object fleetflowv1alpha1.RehearsedObject
		if err := list.Decode(&object); err != nil {
			return nil, errors.New("it is no list of objects")
		}
		objects = append(objects, object)
	}
	if _, err := list.Token(); err != nil {
		return nil, errors.New("it is damaged")
	}
	return objects, nil
}

func lineOf(object *fleetflowv1alpha1.RehearsedObject) Line {
	line := Line{
		Outcome: fleetflowv1alpha1.RehearsalOutcome(clean(string(object.Outcome), maxField)), Object: nameOf(object),
		By: clean(object.By, maxName), Message: clean(object.Message, maxMessage),
	}
	for _, field := range object.Fields[:min(len(object.Fields), maxFields)] {
		line.Fields = append(line.Fields, clean(field.Path, maxField))
	}
	return line
}

// nameOf names an object for people.
func nameOf(object *fleetflowv1alpha1.RehearsedObject) string {
	id := object.Object
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	return clean(strings.TrimSpace(id.Kind+" "+name), maxName)
}
