module tenon.dev/functions

go 1.26

require (
	github.com/apparentlymart/go-cidr v1.1.1
	go.yaml.in/yaml/v3 v3.0.4
)
