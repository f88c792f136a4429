package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Exit codes. Scripts rely on them: one keeps its meaning, and deploy/docs/kubectl-fleet.md lists them all.
const (
	// CodeFailed is the exit code of a command that could not do what it was asked, or watched a rollout fail.
	CodeFailed = 1
	// CodeUsage is the exit code of a command line that cannot be understood: nothing was asked of the hub.
	CodeUsage = 2
	// CodeApproval is the exit code of a command that watched a rollout until it waits for an approval, and was asked to watch
	// it for something behind that.
	CodeApproval = 3
	// CodeStopped is the exit code of a command that watched a rollout stop before it came to what was asked for.
	CodeStopped = 4
	// CodeUnknown is the exit code of a command that found nothing wrong, and could not find out all that it was asked.
	CodeUnknown = 5
	// CodeTimeout is the exit code of a command that has waited for as long as --timeout lets it.
	CodeTimeout = 124
	// CodeInterrupted is the exit code of a command the user ended.
	CodeInterrupted = 130
)

// Exit is an error with an exit code of its own. One without Err says nothing: the output has said it all.
type Exit struct {
	// Code is what the program exits with.
	Code int
	// Err is what went wrong, nil if the output says it.
	Err error
}

func (e *Exit) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns what went wrong.
func (e *Exit) Unwrap() error { return e.Err }

// Usage gives an error about a command line its exit code, if it has none yet.
func Usage(err error) error {
	if _, has := errors.AsType[*Exit](err); has || err == nil {
		return err
	}
	return &Exit{Code: CodeUsage, Err: err}
}

// Usagef is an error about a command line.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// Report prints an error and returns the exit code that goes with it.
func Report(errOut io.Writer, err error, interrupted bool) int {
	exit := &Exit{}
	switch {
	case err == nil:
		return 0
	case interrupted && errors.Is(err, context.Canceled):
		return CodeInterrupted
	case errors.As(err, &exit):
		if text := err.Error(); text != "" {
			Printf(errOut, "Error: %s\n", text)
		}
		return exit.Code
	default:
		Printf(errOut, "Error: %v\n", err)
		return CodeFailed
	}
}
