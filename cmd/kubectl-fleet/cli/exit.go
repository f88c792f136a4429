package cli

const (
	// CodeFailed is the exit code of a command that could not do what it was asked, or watched a rollout fail.
	CodeFailed = 1
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
