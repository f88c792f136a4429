// Package agent is what the processes of the hub's agent and of the members' agents have in common: their log, their
// health endpoints and their profiles.
package agent

import (
	"flag"
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Formats of the log.
const (
	jsonFormat    = "json"
	consoleFormat = "console"
)

// Log says how an agent logs.
type Log struct {
	format    string
	verbosity int
}

// Add adds the flags of the log.
func (l *Log) Add(f *flag.FlagSet) {
	f.StringVar(&l.format, "log-format", jsonFormat, "json or console")
	f.IntVar(&l.verbosity, "v", 0, "verbosity of the log: 0 for what an operator needs, 1 for details such as every report, more for libraries")
}

// Check names the flag that is wrong.
func (l *Log) Check() error {
	if l.format != jsonFormat && l.format != consoleFormat {
		return fmt.Errorf("--log-format is %q; it must be %s or %s", l.format, jsonFormat, consoleFormat)
	}
	return nil
}

// Logger returns a logger that writes to out, one line for each message.
func (l *Log) Logger(out io.Writer) logr.Logger {
	shape := func(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.RFC3339NanoTimeEncoder }
	encoder := zap.JSONEncoder(shape)
	if l.format == consoleFormat {
		encoder = zap.ConsoleEncoder(shape)
	}
	// Stack traces of expected errors, such as an API server that is away, tell nothing.
	log := zap.New(encoder, zap.Level(zapcore.Level(-l.verbosity)), zap.StacktraceLevel(zapcore.PanicLevel), zap.WriteTo(out))
	return log.WithSink(raceSink{log.GetSink()})
}
