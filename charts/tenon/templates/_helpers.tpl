{{/* The name in labels. */}}
{{- define "tenon.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of objects: that of the release, with the chart's unless it is in it already. */}}
{{- define "tenon.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $long := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $long .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* By which a Deployment knows its pods. They never change while a release lives. */}}
{{- define "tenon.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tenon.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tenon.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "tenon.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "tenon.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "tenon.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Whom every binding is for. */}}
{{- define "tenon.subject" -}}
- kind: ServiceAccount
  name: {{ include "tenon.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* The Secret with the cloud config. */}}
{{- define "tenon.configSecret" -}}
{{- default (include "tenon.fullname" .) .Values.existingConfigSecret -}}
{{- end -}}

{{/* Feature gates as NAME=BOOL, by the names of the values with a capital letter. */}}
{{- define "tenon.featureGates" -}}
{{- $gates := list -}}
{{- range $name, $enabled := .Values.settings.featureGates -}}
{{- $gates = append $gates (printf "%s%s=%v" (upper (substr 0 1 $name)) (substr 1 -1 $name) $enabled) -}}
{{- end -}}
{{- join "," $gates -}}
{{- end -}}
