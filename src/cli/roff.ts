/** The pieces of a man page, as man(7) writes them. */

/** Plain text made safe: nothing in it is a request, a hyphen is a hyphen-minus, as on a command line. */
export function roff(text: string): string {
  return text
    .replace(/\\/g, '\\e')
    .replace(/-/g, '\\-')
    .replace(/…/g, '...')
    .replace(/[\u0080-\u{10ffff}]/gu, character => `\\[u${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}]`)
    .replace(/^(?=[.'])/gm, '\\&')
}

/** No date: the same sources give the same page. */
export function header(name: string, section: number, version: string): string {
  return `.TH ${name.toUpperCase().replace(/-/g, '\\-')} ${section} "" "cg ${version}" "cg manual"\n`
}

export function section(title: string, body: string): string {
  return `.SH ${title.toUpperCase()}\n${body}`
}

export function subsection(title: string, body: string): string {
  return `.SS ${roff(title)}\n${body}`
}

export function paragraph(text: string): string {
  return `.PP\n${roff(text)}\n`
}

/** A term and what it means. */
export function entry(term: string, text: string): string {
  return `.TP\n\\fB${roff(term)}\\fR\n${roff(text)}\n`
}

/** A command line as it is typed. */
export function typed(line: string): string {
  return `.PP\n.RS 4\n.EX\n${roff(line)}\n.EE\n.RE\n`
}
