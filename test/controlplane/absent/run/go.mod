module cloud.google.com/go/run

go 1.26.0

require (
	google.golang.org/api v0.256.0
	google.golang.org/protobuf v1.36.12-0.20260120151049-f2248ac996af
)
