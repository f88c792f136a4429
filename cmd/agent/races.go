package agent

import (
	"errors"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// raceSink logs writes that lost their race as information: a patch tests what it rests on, and who was slower reads again and goes
// on. Controllers and workers of libraries log each of them as an error.
type raceSink struct{ logr.LogSink }

// Error logs an error, or that another write was faster.
func (s raceSink) Error(err error, message string, keysAndValues ...any) {
	lost := err
	for _, value := range keysAndValues {
		if said, is := value.(error); is && lost == nil {
			lost = said // as Temporal's SDK has it
		}
	}
	if !lostRace(lost) {
		s.LogSink.Error(err, message, keysAndValues...)
		return
	}
	if err != nil {
		keysAndValues = append(keysAndValues, "error", err.Error())
	}
	inform := s.Info
	inform(0, "Another write was faster, and this is tried again: "+message, keysAndValues...)
}

// Info logs a message. Of a probe that fails controller-runtime logs a list of values without names; the check that fails says itself what
// is wrong.
func (s raceSink) Info(level int, message string, keysAndValues ...any) {
	if message != "healthz check failed" || level > 0 {
		inform := s.LogSink.Info
		inform(level, message, keysAndValues...)
	}
}

// WithValues returns a sink that adds values to each line.
func (s raceSink) WithValues(keysAndValues ...any) logr.LogSink {
	return raceSink{s.LogSink.WithValues(keysAndValues...)}
}

// WithName returns a sink with a name.
func (s raceSink) WithName(name string) logr.LogSink { return raceSink{s.LogSink.WithName(name)} }

// lostRace reports whether a write was refused because what it rests on has changed. The API server answers a failed test of a JSON patch
// with 422 and names no kind, unlike where it finds an object invalid.
func lostRace(err error) bool {
	if apierrors.IsConflict(err) {
		return true
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Reason != metav1.StatusReasonInvalid {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Kind == ""
}
